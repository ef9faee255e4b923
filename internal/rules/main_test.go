package rules_test

import (
	"log"
	"os"
	"path/filepath"
	"testing"
)

// TestMain runs the tests in the module's folder, from where they name files.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
