package certificates

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fsnotify/fsnotify"
)

func TestCloseLeavesAReadingThatHangsBehind(t *testing.T) {
	t.Parallel()

	// The bubble's clock moves when everything waits.
	synctest.Test(t, func(t *testing.T) {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}

		// Whoever follows the files never comes to the end.
		hanging := &Source{watcher: watcher, stopped: make(chan struct{})}

		err = hanging.Close()
		if err == nil || !strings.Contains(err.Error(), "still being read") {
			t.Errorf("got %v", err)
		}
	})
}
