package model

import "time"

// Member is the replicated record of one coordinator: how the others and the agents reach it.
type Member struct {
	ID           string    `json:"id"` // the Raft server ID
	Name         string    `json:"name"`
	RaftAddress  string    `json:"raft_address"`
	APIAddress   string    `json:"api_address"`
	AgentAddress string    `json:"agent_address"`
	JoinedAt     time.Time `json:"joined_at"`
	Revision     uint64    `json:"revision"`
}

// Purpose says what a token enrols.
type Purpose string

// What a token can enrol.
const (
	PurposeAgent       Purpose = "agent"
	PurposeCoordinator Purpose = "coordinator"
	PurposeOperator    Purpose = "operator"
)

// Token is the replicated record of an enrolment token. The secret itself is never stored.
type Token struct {
	Hash      string    `json:"hash"` // hex SHA-256 of the secret
	Purpose   Purpose   `json:"purpose"`
	Name      string    `json:"name,omitempty"` // bound to this host or operator name, or to names of this pattern
	CreatedBy string    `json:"created_by"`
	ExpiresAt time.Time `json:"expires_at"`
	UsedBy    string    `json:"used_by,omitempty"` // ID that it enrolled last; a token that has one is of no more use
	UsedAt    time.Time `json:"used_at,omitzero"`
	Revision  uint64    `json:"revision"`

	Uses int        `json:"uses,omitempty"` // how often it may be used; 0: once
	Used []TokenUse `json:"used,omitempty"` // of a token for several uses, the first one first

	Permit string `json:"permit,omitempty"` // permissions of the operators that it makes; empty: none
}

// Event is one line of the replicated history. Index is the Raft index of the change it tells of.
type Event struct {
	Index     uint64    `json:"index,omitempty"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`    // vm.started, node.enrolled, ...
	Subject   string    `json:"subject"` // vm/NAME, node/NAME, coordinator/NAME
	Message   string    `json:"message"`
	Caller    string    `json:"caller,omitempty"`
	CallerID  string    `json:"caller_id,omitempty"` // of the identity that Caller names
	Operation string    `json:"operation,omitempty"`
	Decision  string    `json:"decision,omitempty"`
}
