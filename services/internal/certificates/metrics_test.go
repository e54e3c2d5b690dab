package certificates_test

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/certificates/certificatestest"
)

func TestCertificatesOfOneProcessAreCountedByTheirUse(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	source := open(t, certificatestest.NewAuthority(t).Write(t, t.TempDir(), "service"))

	for _, use := range []string{"sealer", "handler/refunds"} {
		err := source.Register(registry, use)
		if err != nil {
			t.Fatal(err)
		}
	}

	err := source.Register(registry, "sealer")
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); !ok {
		t.Errorf("one use was registered twice: %v, %v", already, err)
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	uses := map[string]int{}

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				uses[family.GetName()+" "+label.GetName()+"="+label.GetValue()]++
			}
		}
	}

	for _, name := range []string{certificates.MetricReloads, certificates.MetricReloadErrors} {
		for _, use := range []string{"sealer", "handler/refunds"} {
			if uses[name+" use="+use] != 1 {
				t.Errorf("%s has %d series for the use %q, want one: %v", name, uses[name+" use="+use], use, uses)
			}
		}
	}
}
