package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allPassed are results with one good check for each scenario that is judged.
func allPassed() map[string][]Check {
	results := make(map[string][]Check)
	for _, name := range slices.Concat(required, pending) {
		results[name] = []Check{{ID: "check", Status: Success}}
	}
	return results
}

func TestPassesWhenEveryScenarioDoes(t *testing.T) {
	results := allPassed()
	results["caching"] = append(results["caching"], Check{ID: "remark", Status: Info})
	results["tasks-lifecycle"] = []Check{{ID: "check", Status: Failure}}
	verdict := Judge(results)
	if failures := verdict.Failures(); len(failures) != 0 {
		t.Errorf("failed with %q", failures)
	}
	if len(verdict.Scenarios) != 40 || !slices.Equal(verdict.LeftOut, []string{"tasks-lifecycle"}) {
		t.Errorf("judged %d scenarios and left out %q", len(verdict.Scenarios), verdict.LeftOut)
	}
}

func TestFailsWithAnythingLess(t *testing.T) {
	check := func(statuses ...Status) []Check {
		var checks []Check
		for _, status := range statuses {
			checks = append(checks, Check{ID: "id", Description: "what", Status: status, ErrorMessage: "why"})
		}
		return checks
	}
	for name, test := range map[string]struct {
		change func(results map[string][]Check)
		want   []string
	}{
		"a scenario is missing": {
			func(results map[string][]Check) { delete(results, "caching") },
			[]string{"caching: is missing from the results"},
		},
		"a pending scenario is missing": {
			func(results map[string][]Check) { delete(results, "http-header-validation") },
			[]string{"http-header-validation: is missing from the results"},
		},
		"a scenario has no checks": {
			func(results map[string][]Check) { results["caching"] = nil },
			[]string{"caching: is missing from the results"},
		},
		"a check failed": {
			func(results map[string][]Check) { results["tools-list"] = check(Success, Failure) },
			[]string{"tools-list: FAILURE: id: what: why"},
		},
		"a check warned": {
			func(results map[string][]Check) { results["json-schema-2020-12"] = check(Success, Warning) },
			[]string{"json-schema-2020-12: WARNING: id: what: why"},
		},
		"a check was skipped": {
			func(results map[string][]Check) { results["tools-list"] = check(Success, Skipped) },
			[]string{"tools-list: SKIPPED: id: what: why"},
		},
		"a status is new": {
			func(results map[string][]Check) { results["tools-list"] = check(Success, "PARTIAL") },
			[]string{"tools-list: PARTIAL: id: what: why"},
		},
		"there are only remarks": {
			func(results map[string][]Check) { results["tools-list"] = check(Info) },
			[]string{"tools-list: no check succeeded"},
		},
		"a scenario is new": {
			func(results map[string][]Check) { results["brand-new"] = check(Success) },
			[]string{"brand-new: is not known here: have it judged, or leave it out with a reason"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			results := allPassed()
			test.change(results)
			if failures := Judge(results).Failures(); !slices.Equal(failures, test.want) {
				t.Errorf("failed with %q, want %q", failures, test.want)
			}
		})
	}
}

func TestTableNamesEveryScenario(t *testing.T) {
	results := allPassed()
	results["tools-list"] = []Check{{Status: Success}, {Status: Success}, {Status: Warning}}
	results["tasks-lifecycle"] = []Check{{Status: Failure}}
	results["brand-new"] = []Check{{Status: Success}}
	var table strings.Builder
	if err := Judge(results).Print(&table); err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]string)
	for line := range strings.Lines(table.String()) {
		fields := strings.Fields(line)
		lines[fields[0]] = strings.Join(fields[1:], " ")
	}
	for name := range maps.Keys(results) {
		want := "required 1 0 0 0 ok"
		switch {
		case slices.Contains(pending, name):
			want = "pending 1 0 0 0 ok"
		case name == "tools-list":
			want = "required 2 0 1 0 FAILED"
		case name == "tasks-lifecycle":
			want = "left out: " + noTasks
		case name == "brand-new":
			want = "not known here FAILED"
		}
		if lines[name] != want {
			t.Errorf("the line of %s is %q, want %q", name, lines[name], want)
		}
	}
	if summary := "39 of 40 scenarios of 2026-07-28 passed without a failure or a warning, 1 were left out"; !strings.HasSuffix(table.String(), summary+"\n") {
		t.Errorf("the table does not end with %q:\n%s", summary, table.String())
	}
}

func TestReadsWhatTheSuiteWrites(t *testing.T) {
	folder := t.TempDir()
	write := func(scenario, checks string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(folder, scenario), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, scenario, "checks.json"), []byte(checks), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("server-json-schema-2020-12-2026-12-01T18-00-47-765Z",
		`[{"id":"a","name":"A","description":"what","status":"WARNING","errorMessage":"why","details":{"x":1}}]`)
	write("server-server-stateless-2026-12-01T18-00-42-969Z", `[{"id":"b","status":"SUCCESS"}]`)
	results, err := ReadResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got := results["json-schema-2020-12"]; !slices.Equal(got, []Check{{"a", "what", Warning, "why"}}) {
		t.Errorf("read %+v", got)
	}
	if got := results["server-stateless"]; !slices.Equal(got, []Check{{ID: "b", Status: Success}}) {
		t.Errorf("read %+v", got)
	}

	write("server-server-stateless-2026-12-01T18-00-43-000Z", `[]`)
	if _, err := ReadResults(folder); err == nil || !strings.Contains(err.Error(), `"server-stateless" twice`) {
		t.Errorf("a scenario that is there twice is read with %v", err)
	}
}

func TestRefusesResultsThatCannotBeRead(t *testing.T) {
	const scenario = "server-tools-list-2026-12-01T18-00-42-969Z"
	for name, prepare := range map[string]func(folder string) error{
		"no folder":            os.Remove,
		"another file":         func(folder string) error { return os.WriteFile(filepath.Join(folder, "summary.txt"), nil, 0o600) },
		"a scenario unwritten": func(folder string) error { return os.Mkdir(filepath.Join(folder, scenario), 0o750) },
		"checks that are cut short": func(folder string) error {
			if err := os.Mkdir(filepath.Join(folder, scenario), 0o750); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(folder, scenario, "checks.json"), []byte(`[{"id":`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := prepare(folder); err != nil {
				t.Fatal(err)
			}
			if results, err := ReadResults(folder); err == nil {
				t.Errorf("read %v", results)
			}
		})
	}
}
