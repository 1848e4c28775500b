package config_test

import (
	"testing"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }
