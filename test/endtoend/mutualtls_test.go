package endtoend_test

import (
	"net/http"
	"testing"

	"github.com/countersign-mcp/countersign/test/deployment"
)

func TestEdgeAndSealerSpeakMutualTLS(t *testing.T) {
	certificate := deployment.NewCertificate(t)
	sealer := deployment.Sealer{Certificate: certificate}.Start(t)
	handlers := examples(t)

	trusted := deployment.Edge{Sealer: sealer, SealerCertificate: certificate, Handlers: handlers}.Start(t)
	if err := twoRounds(t.Context(), newClient(t, trusted.MCP()), "Ada"); err != nil {
		t.Error(err)
	}
	for use, service := range map[string]*deployment.Service{"listener": sealer, "sealer": trusted} {
		for _, name := range []string{"countersign_certificate_reloads_total", "countersign_certificate_reload_errors_total"} {
			series := service.Metrics(t)[name].GetMetric()
			if len(series) != 1 || len(series[0].GetLabel()) != 1 || series[0].GetLabel()[0].GetValue() != use {
				t.Errorf("%s has the series %v, want one for the use %q", name, series, use)
			}
		}
	}

	// Another certificate, and none at all, get no further than the handshake.
	for name, other := range map[string]*deployment.Certificate{
		"foreign certificate": deployment.NewCertificate(t),
		"plaintext":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			edge := deployment.Edge{Sealer: sealer, SealerCertificate: other, Handlers: handlers}.StartUnready(t)
			reply, err := newClient(t, edge.MCP()).CallTool(t.Context(), askTwice, map[string]any{}, nil, "")
			failure(t, reply, err, http.StatusServiceUnavailable, codeInternal)
		})
	}
}
