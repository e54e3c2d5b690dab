package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// pixel is a PNG file of one red pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"

func redPixel() handler.Content { return handler.Image("image/png", redPixelFile()) }

func redPixelFile() []byte {
	file, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		panic(err) // the constant above is not what it says
	}
	return file
}

// silence is a WAVE file of a hundredth of a second: 8,000 samples a second on one
// channel, a byte each, where 128 is no sound.
func silence() []byte {
	const (
		rate = 8000
		size = rate / 100
	)
	file := []byte("RIFF")
	file = binary.LittleEndian.AppendUint32(file, 36+size) // what follows these eight bytes
	file = append(file, "WAVEfmt "...)
	file = binary.LittleEndian.AppendUint32(file, 16)   // length of the format
	file = binary.LittleEndian.AppendUint16(file, 1)    // uncompressed
	file = binary.LittleEndian.AppendUint16(file, 1)    // channels
	file = binary.LittleEndian.AppendUint32(file, rate) // samples a second
	file = binary.LittleEndian.AppendUint32(file, rate) // bytes a second
	file = binary.LittleEndian.AppendUint16(file, 1)    // bytes a sample
	file = binary.LittleEndian.AppendUint16(file, 8)    // bits a sample
	file = append(file, "data"...)
	file = binary.LittleEndian.AppendUint32(file, size)
	return append(file, bytes.Repeat([]byte{128}, size)...)
}
