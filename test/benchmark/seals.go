package main

func (b *benchmark) seals(string) error { return nil }
