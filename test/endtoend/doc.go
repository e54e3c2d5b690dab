// Package endtoend proves the suite from the outside: with its programs as
// processes, the official clients, and nothing faked.
package endtoend
