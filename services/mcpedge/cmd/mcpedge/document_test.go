package main

import (
	"reflect"
	"testing"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/config/configtest"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
)

func TestEveryOptionOfTheEdgeIsDescribed(t *testing.T) {
	configuration := defaults()
	configuration.Server.Version = "" // the edge's own, whatever that is
	configtest.Document{
		Path:    "../../../../docs/operations.md",
		Heading: "The edge's options",
		Shared: map[reflect.Type]string{
			reflect.TypeFor[certificates.Files]():      "Certificates",
			reflect.TypeFor[keysource.Configuration](): "Keys",
			reflect.TypeFor[tracing.Configuration]():   "Tracing",
		},
	}.Compare(t, configuration)
}
