// Command sealer serves SealerService and keeps the files its keys are in.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/countersign-mcp/countersign/services/internal/ballast"
)

// version is the version of the program; a release build sets it.
var version = "0.1.0-dev"

// program is the command line.
type program struct {
	Serve   serveCommand     `cmd:"" help:"Seal and open request state for edges."`
	Keys    keysCommands     `cmd:"" help:"Make and rotate key files."`
	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	var commands program

	parsed := kong.Parse(&commands,
		kong.Name("sealer"),
		kong.Description("The sealer of Countersign: it alone holds keys and decides whether request state is good."),
		kong.Vars{"version": version},
	)
	parsed.FatalIfErrorf(parsed.Run())
}

// serveCommand runs the service until it is told to stop.
type serveCommand struct {
	Config         string `help:"The configuration file."                      placeholder:"FILE" required:"" type:"existingfile"`
	ValidateConfig bool   `help:"Check the configuration file and do nothing." name:"validate-config"`
}

// Run implements the command.
func (c *serveCommand) Run() error {
	err := disableCoreDumps()
	if err != nil {
		return err
	}

	configuration, err := loadConfiguration(c.Config)
	if err != nil {
		return err
	}

	if c.ValidateConfig {
		fmt.Fprintf(os.Stdout, "%s is valid\n", c.Config)

		return nil
	}

	ballast.Take()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("service", "sealer")

	forget := context.AfterFunc(ctx, func() {
		stop() // the default action of a signal is back
		logger.Info("told to stop; a second signal ends the process at once")
	})
	defer forget()

	running, err := newService(ctx, configuration, time.Now, rand.Reader, logger)
	if err != nil {
		return err
	}

	return running.run(ctx)
}

// disableCoreDumps keeps the keys out of a file that a crash would write.
func disableCoreDumps() error {
	err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	if err != nil {
		return fmt.Errorf("disable core dumps: %w", err)
	}

	return nil
}
