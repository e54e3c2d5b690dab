package conformance

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Verdict is what the results of one run come to.
type Verdict struct {
	// Scenarios are those that are judged, in the order of the suite.
	Scenarios []Scenario
	// LeftOut are the scenarios that were run and are not judged.
	LeftOut []string
	// Unknown are scenarios of the results that are neither judged nor left out.
	Unknown []string
}

// Scenario is one scenario that is judged.
type Scenario struct {
	Name string
	// Kind is `required` or `pending`.
	Kind string
	// Checks are those that the suite made; none when it did not run the scenario.
	Checks []Check
}

// Judge sorts the results into what is judged and what is not.
func Judge(results map[string][]Check) Verdict {
	var verdict Verdict
	for _, name := range required {
		verdict.Scenarios = append(verdict.Scenarios, Scenario{Name: name, Kind: "required", Checks: results[name]})
	}
	for _, name := range pending {
		verdict.Scenarios = append(verdict.Scenarios, Scenario{Name: name, Kind: "pending", Checks: results[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		switch _, known := leftOut[name]; {
		case known:
			verdict.LeftOut = append(verdict.LeftOut, name)
		case !slices.Contains(required, name) && !slices.Contains(pending, name):
			verdict.Unknown = append(verdict.Unknown, name)
		}
	}
	return verdict
}

// Failures says, one sentence each, why the run has not passed; none if it has.
func (v Verdict) Failures() []string {
	var failures []string
	for _, scenario := range v.Scenarios {
		failures = append(failures, scenario.failures()...)
	}
	for _, name := range v.Unknown {
		failures = append(failures, name+": is not known here: have it judged, or leave it out with a reason")
	}
	return failures
}

// Count is how many checks of the scenario came out in this way.
func (s Scenario) Count(status Status) int {
	count := 0
	for _, check := range s.Checks {
		if check.Status == status {
			count++
		}
	}
	return count
}

func (s Scenario) failures() []string {
	if len(s.Checks) == 0 {
		return []string{s.Name + ": is missing from the results"}
	}
	var failures []string
	for _, check := range s.Checks {
		if check.Status != Success && check.Status != Info {
			failures = append(failures, fmt.Sprintf("%s: %s: %s: %s: %s",
				s.Name, check.Status, check.ID, check.Description, check.ErrorMessage))
		}
	}
	if len(failures) == 0 && s.Count(Success) == 0 {
		failures = []string{s.Name + ": no check succeeded"}
	}
	return failures
}

// Print writes the verdict as a table.
func (v Verdict) Print(output io.Writer) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "scenario\tkind\tpassed\tfailed\twarnings\tskipped\t\n")
	passed := 0
	for _, scenario := range v.Scenarios {
		outcome := "FAILED"
		if len(scenario.failures()) == 0 {
			outcome = "ok"
			passed++
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", scenario.Name, scenario.Kind,
			scenario.Count(Success), scenario.Count(Failure), scenario.Count(Warning), scenario.Count(Skipped), outcome)
	}
	for _, name := range v.LeftOut {
		fmt.Fprintf(table, "%s\tleft out: %s\n", name, leftOut[name])
	}
	for _, name := range v.Unknown {
		fmt.Fprintf(table, "%s\tnot known here\t\t\t\t\tFAILED\n", name)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	fmt.Fprintf(output, "%d of %d scenarios of %s passed without a failure or a warning, %d were left out\n",
		passed, len(v.Scenarios), Revision, len(v.LeftOut))
	return nil
}
