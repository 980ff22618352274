// Package view is what decisions are made on: all that is known about the clusters at one moment, immutable. New joins the
// records with the facts of the nodes and does all accounting: both memory ledgers, vCPUs, customer keys, affinity groups,
// storage pools and spare nodes. A View never changes; Without and With give another view for a what-if, and Columns are the
// figures of one cluster's nodes in a form that rules can read and planned moves can charge.
package view
