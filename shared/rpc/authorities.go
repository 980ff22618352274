package rpc

// AuthoritiesHeader names in each answer of a coordinator the IDs of the authorities that are trusted, with commas between them. The first
// signs.
const AuthoritiesHeader = "Berth-Authorities"
