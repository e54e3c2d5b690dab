package certificates

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// MetricReloads counts how many times new certificates were taken.
	MetricReloads = "countersign_certificate_reloads_total"
	// MetricReloadErrors counts how many times new files were bad and the old
	// certificates stayed.
	MetricReloadErrors = "countersign_certificate_reload_errors_total"
	// MetricRefusedPeers counts peers that were refused in the handshake.
	MetricRefusedPeers = "countersign_certificate_refused_peers_total"
)

// Register makes the counts of a Source metrics. Use is the value of the label
// `use`: what the certificates are for, such as `listener`. A process registers each
// use once.
func (s *Source) Register(registerer prometheus.Registerer, use string) error {
	labels := prometheus.Labels{"use": use}

	return errors.Join(
		registerer.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricReloads, Help: "Times new certificates were taken.", ConstLabels: labels,
		}, func() float64 { return float64(s.Reloads()) })),
		registerer.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricReloadErrors, Help: "Times new certificate files were not usable.", ConstLabels: labels,
		}, func() float64 { return float64(s.Refused()) })),
		registerer.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricRefusedPeers, Help: "Peers that were refused in the TLS handshake.", ConstLabels: labels,
		}, func() float64 { return float64(s.RefusedPeers()) })),
	)
}
