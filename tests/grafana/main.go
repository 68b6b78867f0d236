// SPDX-License-Identifier: Apache-2.0 OR MIT
// schema: reads dashboards with the types that Grafana generates from its schema (grafana-foundation-sdk), strictly: unknown fields, wrong types
// and values outside the schema's bounds are errors.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The kit returns empty lists of errors as errors.
func failed(err error) bool {
	var list cog.BuildErrors
	return err != nil && !(errors.As(err, &list) && len(list) == 0)
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var read dashboard.Dashboard
	if err := read.UnmarshalJSONStrict(text); failed(err) {
		return fmt.Errorf("%s does not match the schema: %w", file, err)
	}
	if err := read.Validate(); failed(err) {
		return fmt.Errorf("%s breaks a rule of the schema: %w", file, err)
	}
	fmt.Printf("%s: %d panels\n", file, len(read.Panels))
	return nil
}

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
