// Package document is the commands that read and write the estate as a document: apply and export.
package document
