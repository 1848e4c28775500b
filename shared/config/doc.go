// Package config loads a service's settings from environment variables into one struct per service. The struct of a
// service is made of the structs of the parts that the service uses. The package reports every fault at once, by the
// variable's name, and never shows a secret. The package does not know what the settings are for.
package config
