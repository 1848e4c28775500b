// Package config owns how a service learns its settings: from environment variables, into one struct
// per service that is made of the structs of the parts it uses. It reports every fault at once, by
// the variable's name, and never shows a secret. It refuses to know what the settings are for.
package config
