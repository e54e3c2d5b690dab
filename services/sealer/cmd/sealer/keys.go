package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
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
	File            string        `help:"The key file."                                                                placeholder:"FILE" required:""                                                                              type:"existingfile" xor:"keys"`
	Config          string        `help:"A sealer's configuration file, which names the key file and the activation delay." placeholder:"FILE" required:"" type:"existingfile" xor:"keys,delay"`
	ActivationDelay time.Duration `help:"The activation delay of the sealers, beside --file; 65m if not given." placeholder:"DURATION" xor:"delay"`
}

// Run implements the command.
func (c *listKeysCommand) Run() error {
	path, delay, err := c.keys()
	if err != nil {
		return err
	}

	return listKeys(os.Stdout, path, time.Now(), delay)
}

// keys returns the key file and the activation delay that the command line names.
func (c *listKeysCommand) keys() (string, time.Duration, error) {
	if c.Config == "" {
		return c.File, cmp.Or(c.ActivationDelay, keyring.Defaults().ActivationDelay), nil
	}

	configuration, err := loadConfiguration(c.Config)
	if err != nil {
		return "", 0, err
	}

	keys := configuration.Keys
	if keys.Source != keysource.File {
		return "", 0, fmt.Errorf("%s: keys: the source is %s, and there is no file to list", c.Config, keys.Source)
	}

	return keys.File, keys.ActivationDelay.Duration(), nil
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
