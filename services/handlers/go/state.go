package handler

import (
	"fmt"
	"strings"
	"sync"
)

// oncePrefix keeps what Once records apart from what a handler stores itself.
const oncePrefix = "once:"

// State is what the next attempt of this chain finds again: strings by name. It
// travels through the client, sealed, with every ask: keep it small, and keep
// secrets out of it. Changes made after the last ask go nowhere.
type State struct {
	attempt *attempt
}

// State returns the state of the chain.
func (c *Context) State() State { return State{c.attempt} }

// Get returns the string stored under name and whether there is one.
func (s State) Get(name string) (string, bool) {
	s.attempt.mutex.Lock()
	defer s.attempt.mutex.Unlock()
	value, found := s.attempt.state[name]
	return value, found
}

// Set stores value under name. It fails once the attempt has ended, and for a
// name that begins with `once:`, which belongs to [Once].
func (s State) Set(name, value string) error {
	if strings.HasPrefix(name, oncePrefix) {
		return s.attempt.misused(fmt.Errorf("the state %q belongs to Once", name))
	}
	return s.attempt.setState(name, value)
}

// Delete removes what is stored under name. It fails once the attempt has ended.
func (s State) Delete(name string) error {
	if strings.HasPrefix(name, oncePrefix) {
		return s.attempt.misused(fmt.Errorf("the state %q belongs to Once", name))
	}
	if err := s.attempt.over(); err != nil {
		return err
	}
	s.attempt.mutex.Lock()
	defer s.attempt.mutex.Unlock()
	delete(s.attempt.state, name)
	return nil
}

func (a *attempt) setState(name, value string) error {
	if err := a.over(); err != nil {
		return err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.state[name] = value
	return nil
}

// Once runs the function the first time, keeps its result as JSON in the state
// and returns that on every later attempt. Use it for work before an ask that
// must not be repeated: a number that is drawn, a reservation that is made.
//
// A function that fails is not recorded and runs again on the next attempt. Once
// the attempt has ended the function does not run and Once returns
// [ErrAttemptEnded].
//
// The record travels with the next ask. If the process dies or the client goes
// away before that, there is no record: for an effect that must never happen
// twice hand [Context.ChainID] to whoever performs it as well.
func Once[T any](ctx *Context, key string, run func() (T, error)) (T, error) {
	var zero T
	lock := ctx.attempt.onceLock(key)
	lock.Lock()
	defer lock.Unlock()
	if err := ctx.attempt.over(); err != nil {
		return zero, err
	}
	recorded, found := ctx.State().Get(oncePrefix + key)
	if !found {
		value, err := run()
		if err != nil {
			return zero, err
		}
		encoded, err := encodeJSON(value)
		if err != nil {
			return zero, ctx.attempt.misused(fmt.Errorf("record the result of Once under %q: %w", key, err))
		}
		recorded = string(encoded)
		if err := ctx.attempt.setState(oncePrefix+key, recorded); err != nil {
			return zero, err
		}
	}
	// The first attempt reads the record too, so that it sees what later ones see.
	var value T
	if err := decodeJSON([]byte(recorded), &value); err != nil {
		return zero, ctx.attempt.misused(fmt.Errorf("read what Once recorded under %q: %w", key, err))
	}
	return value, nil
}

// onceLock makes two goroutines that reach the same Once run it once.
func (a *attempt) onceLock(key string) *sync.Mutex {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lock, found := a.onceLocks[key]
	if !found {
		lock = new(sync.Mutex)
		a.onceLocks[key] = lock
	}
	return lock
}
