package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
)

// keysCommands make and rotate key files.
type keysCommands struct {
	New    newKeysCommand    `cmd:"" help:"Make a key file with one version."`
	Rotate rotateKeysCommand `cmd:"" help:"Add a version to a key file. It seals after the activation delay."`
	List   listKeysCommand   `cmd:"" help:"Show the versions in a key file, without their roots."`
}

type newKeysCommand struct {
	File string `help:"The key file to make; it must not exist." placeholder:"FILE" required:"" type:"path"`
}

// Run implements the command.
func (c *newKeysCommand) Run() error {
	err := file.Create(c.File, time.Now(), rand.Reader)
	if err != nil {
		return err
	}

	fmt.Fprintf(os.Stdout, "made %s with version 1\n", c.File)

	return nil
}

type rotateKeysCommand struct {
	File string `help:"The key file." placeholder:"FILE" required:"" type:"existingfile"`
}

// Run implements the command.
func (c *rotateKeysCommand) Run() error {
	number, err := file.Rotate(c.File, time.Now(), rand.Reader)
	if err != nil {
		return err
	}

	fmt.Fprintf(os.Stdout, "added version %d to %s\n", number, c.File)

	return nil
}

type listKeysCommand struct {
	File            string        `help:"The key file."                                     placeholder:"FILE" required:"" type:"existingfile"`
	ActivationDelay time.Duration `default:"65m" help:"The activation delay of the sealers."`
}

// Run implements the command.
func (c *listKeysCommand) Run() error {
	return listKeys(os.Stdout, c.File, time.Now(), c.ActivationDelay)
}

// listKeys writes a table of the versions in a key file.
func listKeys(output io.Writer, path string, now time.Time, activationDelay time.Duration) error {
	versions, err := file.Read(path)
	if err != nil {
		return err
	}

	ring, err := keyring.NewRing(versions, now)
	if err != nil {
		return fmt.Errorf("key file %q: %w", path, err)
	}

	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tKEY ID\tCREATED\tSTATE")

	for _, entry := range ring.Entries() {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n",
			entry.Number, entry.ID, entry.Created.UTC().Format(time.RFC3339), ring.State(entry, now, activationDelay))
	}

	err = table.Flush()
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}

	return nil
}
