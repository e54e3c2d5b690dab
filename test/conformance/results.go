// Package conformance runs the official conformance suite of the Model Context
// Protocol against the programs of this repository and judges what it found more
// strictly than the suite does.
//
// The suite writes a folder for each scenario with the checks it made. Its own
// verdict forgives: a warning does not count, a scenario whose checks were all
// skipped gets a tick, and what is pending or an extension is shown and ignored.
// Here the scenarios are named one by one. One that is named must be in the
// results, with at least one check that succeeded and none that failed, warned or
// was skipped. One that is left out must be named too, with its reason, so that a
// newer suite cannot add a scenario that nobody looks at.
//
// The limit: only what the suite checks is proven. It never tests what must happen
// to a request state that is expired, foreign or forged with care.
package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Check is one thing that the suite looked at.
type Check struct {
	ID           string `json:"id"`
	Description  string `json:"description"`
	Status       Status `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

// Status is how a check came out.
type Status string

// The statuses that the suite knows.
const (
	Success Status = "SUCCESS"
	Failure Status = "FAILURE"
	Warning Status = "WARNING"
	Skipped Status = "SKIPPED"
	// Info is a remark: that something optional is done one way or the other.
	Info Status = "INFO"
)

// scenarioFolder is what the suite calls the folder of a scenario: its name and
// when it was run.
var scenarioFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z$`)

// ReadResults reads what the suite has written into a folder: the checks by the
// name of their scenario.
func ReadResults(folder string) (map[string][]Check, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	results := make(map[string][]Check, len(entries))
	for _, entry := range entries {
		match := scenarioFolder.FindStringSubmatch(entry.Name())
		if match == nil {
			return nil, fmt.Errorf("the results hold %q, which is not the folder of a scenario", entry.Name())
		}
		scenario := match[1]
		if _, twice := results[scenario]; twice {
			return nil, fmt.Errorf("the results hold the scenario %q twice", scenario)
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name(), "checks.json"))
		if err != nil {
			return nil, fmt.Errorf("read the checks of the scenario %q: %w", scenario, err)
		}
		var checks []Check
		if err := json.Unmarshal(text, &checks); err != nil {
			return nil, fmt.Errorf("read the checks of the scenario %q: %w", scenario, err)
		}
		results[scenario] = checks
	}
	return results, nil
}
