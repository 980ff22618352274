// Package plan is the noun plan: it lists, makes, carries out and stops plans.
package plan
