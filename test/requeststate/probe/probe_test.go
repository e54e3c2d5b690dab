package probe

import (
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARightServerPassesEveryCase(t *testing.T) {
	verdicts := verdictsOf(t, startFakeServer(t, "none"))
	for name, verdict := range verdicts {
		if verdict.Verdict != Passed {
			t.Errorf("%s: %s: %s", name, verdict.Verdict, verdict.Detail)
		}
	}
	if len(verdicts) != len(cases) {
		t.Errorf("%d verdicts for %d cases", len(verdicts), len(cases))
	}
}

// TestEachDefectFailsItsCases shows that no case passes whatever the server does.
func TestEachDefectFailsItsCases(t *testing.T) {
	failed := map[string]bool{}
	for d, want := range map[defect][]string{
		"does not verify":                   {"changed characters", "spliced"},
		"passes over what is not a string":  {"wrong JSON types"},
		"takes null for a state":            {"null"},
		"asks again instead of refusing":    {"invented", "truncated", "other principal", "expired"},
		"does not look at what is too long": {"oversize"},
		"does not decode JSON":              {"JSON escapes"},
		"decodes padding":                   {"padding"},
		"skips line breaks":                 {"line breaks"},
		"skips white space":                 {"white space"},
		"decodes both alphabets":            {"other alphabet"},
		"ignores unused bits":               {"unused bits"},
		"decodes percent":                   {"percent-encoding"},
		"decodes a data URL":                {"other encodings"},
		"cuts at a dot":                     {"extended"},
		"ignores the subject":               {"other principal"},
		"ignores the issuer":                {"other issuer"},
		"ignores the deployment":            {"other deployment"},
		"ignores the method":                {"other method"},
		"ignores the target":                {"other target"},
		"ignores the params":                {"other arguments", "large integers"},
		"reads doubles":                     {"large integers", "long decimals"},
		"binds the text":                    {"equal numbers", "key order", "spelling"},
		"takes the last of two names":       {"duplicate keys"},
		"ignores the question":              {"changed question"},
		"serves once":                       {"replayed"},
		"ignores the expiry":                {"expired"},
		"ignores the chain expiry":          {"chain expired"},
		"ignores the unknown key":           {"unknown key"},
		"ignores the prepared key":          {"prepared key"},
		"ignores the retired key":           {"retired key"},
		"says why":                          {"other principal", "other arguments", "expired"},
	} {
		t.Run(string(d), func(t *testing.T) {
			verdicts := verdictsOf(t, startFakeServer(t, d))
			for _, name := range want {
				if verdict := verdicts[name]; verdict.Verdict != Failed {
					t.Errorf("%s: %q %s, want it failed", name, verdict.Verdict, verdict.Detail)
				}
				failed[name] = true
			}
		})
	}
	for _, c := range cases {
		if !failed[c.name] {
			t.Errorf("no defect shows that the case %q can fail", c.name)
		}
	}
}

func verdictsOf(t *testing.T, target *Target) map[string]Verdict {
	t.Helper()
	list, err := Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]Verdict{}
	for _, verdict := range list {
		verdicts[verdict.Case] = verdict
	}
	return verdicts
}

func TestACaseWhoseNeedIsNotMetIsNotApplicable(t *testing.T) {
	full := startFakeServer(t, "none")
	least := &Target{Endpoint: full.Endpoint, Request: full.Request}
	applicable := 0
	for name, verdict := range verdictsOf(t, least) {
		i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
		switch {
		case cases[i].needs == nil && verdict.Verdict != Passed:
			t.Errorf("%s: %s: %s", name, verdict.Verdict, verdict.Detail)
		case cases[i].needs != nil && verdict.Verdict != NotApplicable:
			t.Errorf("%s: %s, and the target does not offer what it needs", name, verdict.Verdict)
		case cases[i].needs != nil && (verdict.Detail == "" || verdict.Presented != 0):
			t.Errorf("%s: it says %q after %d requests", name, verdict.Detail, verdict.Presented)
		case cases[i].needs == nil:
			applicable++
		}
	}
	if applicable == 0 {
		t.Error("nothing is applicable to a server of which only its endpoint is known")
	}
}

func TestTheReasonsOfRefusalsAreChecked(t *testing.T) {
	allowed := []string{"malformed", "not_authentic"}
	for name, test := range map[string]struct {
		counted  map[string]int
		refusals int
		right    bool
	}{
		"all of them":   {map[string]int{"malformed": 2, "not_authentic": 1}, 3, true},
		"none":          {nil, 0, true},
		"another":       {map[string]int{"malformed": 2, "expired": 1}, 3, false},
		"one too few":   {map[string]int{"malformed": 2}, 3, false},
		"one too many":  {map[string]int{"malformed": 4}, 3, false},
		"not accounted": {map[string]int{"malformed": 1}, 0, false},
	} {
		if err := checkReasons(test.counted, allowed, test.refusals); (err == nil) != test.right {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
