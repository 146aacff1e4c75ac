// SPDX-License-Identifier: Apache-2.0

// Command collector is an OpenTelemetry Collector with only the components that deploy/observability needs. It is a
// separate module, so that no other module requires the collector's many dependencies.
package main

import (
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	command := otelcol.NewCommand(collectorSettings())
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// collectorSettings returns the settings of a collector that reads its configuration from files and its command line.
func collectorSettings() otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "OpenTelemetry Collector of the tests"},
		Factories: newFactories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{
				fileprovider.NewFactory(), yamlprovider.NewFactory(), envprovider.NewFactory(), // env is mandatory
			},
		}},
	}
}

// newFactories returns the factories of all components that a configuration of this collector can use.
func newFactories() (otelcol.Factories, error) {
	all := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
	var err error
	if all.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return all, fmt.Errorf("list the receivers: %w", err)
	}
	all.Processors, err = otelcol.MakeFactoryMap[processor.Factory](
		memorylimiterprocessor.NewFactory(), batchprocessor.NewFactory())
	if err != nil {
		return all, fmt.Errorf("list the processors: %w", err)
	}
	if all.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory()); err != nil {
		return all, fmt.Errorf("list the exporters: %w", err)
	}
	return all, nil
}
