package model

import (
	"strconv"
	"strings"
	"time"

	"berth/shared/units"
)

// Storage says where the disks of a cluster's VMs are.
type Storage string

// The two ways of a cluster's storage.
const (
	SharedStorage Storage = "shared" // every node reaches every disk
	LocalStorage  Storage = "local"  // a VM is placed when it is created, and starts where its disk is
)

// KeyScope says whose VMs a customer key can meet.
type KeyScope string

// The scopes of customer keys.
const (
	ScopeCustomer KeyScope = "customer" // those of the same customer; billing-entity keys: of the same billing entity
	ScopeCluster  KeyScope = "cluster"  // all in the cluster: the seed's single name space
)

// Ledger says what the physical memory ledger believes.
type Ledger string

// The two ways to keep the physical ledger.
const (
	Pessimistic Ledger = "pessimistic" // memory that KSM and ballooning save now counts as lost
	Optimistic  Ledger = "optimistic"  // it counts as free
)

// Names of a cluster's settings, as in estates, on the command line and in records.
const (
	SettingStorage        = "storage"
	SettingRAMRatio       = "ram_ratio"
	SettingCPURatio       = "cpu_ratio"
	SettingOverhead       = "overhead"
	SettingInitialMSAV    = "initial_msav"
	SettingFinalMSAV      = "final_msav"
	SettingMSAVSteps      = "msav_steps"
	SettingKeyScope       = "customer_key_scope"
	SettingPhysicalLedger = "physical_ledger"
	SettingEnforcement    = "enforcement"
	SettingBalancing      = "balancing"
	SettingBalanceWindow  = "balance_window"
	SettingCooldown       = "cooldown"
	SettingParallelMoves  = "parallel_moves"
	SettingParallelStarts = "parallel_starts"
	SettingSpareNodes     = "spare_nodes"
	SettingPromiseVCPUs   = "promise_vcpus" // true or false
	SettingUpgradeMode    = "upgrade_mode"  // true or false
	SettingFenceAfter     = "fence_after"
	SettingFenceSickAfter = "fence_sick_after"
	SettingRestart        = "restart"
	SettingCPUModel       = "cpu_model"          // of a cluster: the baseline, instead of the computed one
	SettingPermit         = "permit"             // of a cluster: what may be put onto its hosts beside what needs no permission
	SettingImageFolders   = "image_folders"      // of a cluster: where files need no permission
	SettingCapacityLimit  = "capacity_threshold" // of a zone, and of a cluster instead of its zone's
)

// Names of a zone's settings: how planners put its pods and clusters in order. The seed writes them with dots
// (apply.planner.heuristics.to, user.vm.dispersion.weight).
const (
	SettingPlanner          = "planner"                     // of offers that name none
	SettingHeuristicsTo     = "apply_planner_heuristics_to" // LevelPod or LevelCluster
	SettingDispersionWeight = "user_vm_dispersion_weight"   // 0 to 1
	SettingCapacityType     = "capacity_type"               // CapacityCPU, CapacityRAM or CapacityCombined
	SettingCPUWeight        = "cpu_to_memory_weight"        // 0 to 1, of CapacityCombined
	SettingSpecialLabels    = "special_labels"              // of nodes that are kept for VMs that need them, with commas between
)

// Words of a zone's settings.
const (
	LevelPod         = "pod"
	LevelCluster     = "cluster"
	CapacityCPU      = "cpu"
	CapacityRAM      = "ram"
	CapacityCombined = "combined" // of both, by SettingCPUWeight
)

// Defaults of a zone's settings.
const (
	DefaultPlanner           = "first-fit"
	DefaultDispersionWeight  = 1.0
	DefaultCPUWeight         = 0.5
	DefaultCapacityThreshold = 0.85
	DefaultSpecialLabels     = "gpu"
)

// MaxCapacityThreshold bounds the used share above which planners leave a cluster out; 0 leaves none out.
const MaxCapacityThreshold = 10.0

// ZoneSettings are those of a zone with every default filled in.
type ZoneSettings struct {
	Planner           string  // of offers that name none; empty: none is set, and the cluster's policy has it
	Level             string  // LevelPod or LevelCluster
	Weight            float64 // of dispersion, 0 to 1; used capacity weighs 1 less that
	Capacity          string  // CapacityCPU, CapacityRAM or CapacityCombined
	CPUWeight         float64 // of CPU in CapacityCombined, 0 to 1; memory weighs 1 less that
	CapacityThreshold float64 // used share above which a cluster is left out; 0: none is

	// Special are labels of nodes that have something that few VMs need: clusters with such nodes come last for the others.
	Special []string
}

// ZoneSettingsOf reads the settings of a zone's record, nil for none; what it does not set, or sets to what cannot be read,
// is as by default. Records are validated where they come in.
func ZoneSettingsOf(record *Resource) ZoneSettings {
	s := ZoneSettings{
		Level: LevelCluster, Weight: DefaultDispersionWeight, Capacity: CapacityCPU, CPUWeight: DefaultCPUWeight,
		CapacityThreshold: DefaultCapacityThreshold, Special: splitLabels(DefaultSpecialLabels),
	}
	if record == nil {
		return s
	}
	s.Planner = record.Settings[SettingPlanner]
	if record.Settings[SettingHeuristicsTo] == LevelPod {
		s.Level = LevelPod
	}
	for name, into := range map[string]*float64{
		SettingDispersionWeight: &s.Weight, SettingCPUWeight: &s.CPUWeight, SettingCapacityLimit: &s.CapacityThreshold,
	} {
		if f, err := strconv.ParseFloat(record.Settings[name], 64); err == nil {
			*into = f
		}
	}
	if word := record.Settings[SettingCapacityType]; word == CapacityRAM || word == CapacityCombined {
		s.Capacity = word
	}
	if labels, set := record.Settings[SettingSpecialLabels]; set {
		s.Special = splitLabels(labels)
	}
	return s
}

// NoLabels stands for a list of no label.
const NoLabels = "none"

// splitLabels reads labels with commas between.
func splitLabels(text string) []string {
	if text == NoLabels {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// Mode is what a loop of the leader does with the moves that it finds.
type Mode string

// The modes.
const (
	Off       Mode = "off"
	Manual    Mode = "manual"    // it proposes a plan, which somebody applies or discards
	Automatic Mode = "automatic" // it carries them out, one after the other
)

// Defaults and bounds of a cluster's loops.
const (
	DefaultCooldown      = 30 * time.Minute // between two moves of one VM that nobody asked for
	MaxCooldown          = 30 * 24 * time.Hour
	DefaultParallelMoves = 2 // of a plan, out of one node, and into one
	MaxParallelMoves     = 16

	DefaultParallelStarts = 5 // on one node
	MaxParallelStarts     = 64

	DefaultFenceAfter = time.Minute // of silence; a node that is only on its way to a new leader is back long before
	MinFenceAfter     = UnreachableAfter
	MaxFenceAfter     = 24 * time.Hour

	FenceSickNever    = "never" // setting: a node that answers is never fenced
	MinFenceSickAfter = 5 * time.Minute
)

// Settings are those of a cluster with every default filled in.
type Settings struct {
	Storage        Storage
	Nodes          EffectiveSettings // defaults of its nodes
	InitialMSAV    float64           // threshold of the first system round
	FinalMSAV      float64           // threshold of the last
	MSAVSteps      int               // how many rounds
	KeyScope       KeyScope
	PhysicalLedger Ledger

	Enforcement   Mode          // of the groups' rules
	Balancing     Mode          // by the policy's balancer
	BalanceWindow Window        // when balancing may move VMs; zero: always
	Cooldown      time.Duration // before balancing or a soft repair moves a VM again
	ParallelMoves int           // of one plan out of a node, and into one
	// ParallelStarts is how many VMs start on a node at a time; further ones wait for their turn.
	ParallelStarts int

	// SpareNodes is how many nodes may fail at a time so that all their highly available VMs can be restarted on the others:
	// every decision keeps that. 0: nothing is kept free.
	SpareNodes int

	// PromiseVCPUs keeps the vCPUs of a node within its CPUs times the CPU contention ratio, whatever the policy.
	PromiseVCPUs bool
	// UpgradeMode keeps the leader from moving VMs by itself: rules are not enforced, and nothing is balanced.
	UpgradeMode bool
	// FenceSickAfter is how long a node that answers may say that it is sick before it is fenced for such VMs; 0: it never is.
	FenceSickAfter time.Duration
	FenceAfter     time.Duration // of a node's silence, before it is fenced for the VMs that are to be highly available
	// Restart says which VMs are started again by themselves.
	Restart Restart
}

// Restart says which VMs are started again by themselves.
type Restart string

// Which VMs are started again by themselves. One that ended while its host ran on is only if it has HA.
const (
	RestartAlways Restart = "always" // also those without HA, once their host is back that had lost its power
	RestartHA     Restart = "ha"     // those with HA only
	RestartNever  Restart = "never"  // of a VM: not even with HA, people start it
)

// Defaults and bounds of a cluster's rounds (FCO step 4).
const (
	DefaultInitialMSAV = 80.0
	DefaultFinalMSAV   = -10.0
	DefaultMSAVSteps   = 10
	MaxMSAVSteps       = 1000
)

// DefaultSettings are those of a cluster that sets none.
func DefaultSettings() Settings {
	return Settings{
		Storage: SharedStorage,
		Nodes: EffectiveSettings{
			RAMRatio: DefaultRAMRatio, CPURatio: DefaultCPURatio, Overhead: DefaultOverhead,
		},
		InitialMSAV: DefaultInitialMSAV, FinalMSAV: DefaultFinalMSAV, MSAVSteps: DefaultMSAVSteps,
		KeyScope: ScopeCustomer, PhysicalLedger: Pessimistic,
		Enforcement: Automatic, Balancing: Manual, Cooldown: DefaultCooldown, ParallelMoves: DefaultParallelMoves,
		ParallelStarts: DefaultParallelStarts,
		FenceAfter:     DefaultFenceAfter, Restart: RestartAlways,
	}
}

// SettingsOf reads the settings of a cluster's record; what it does not set, or sets to what cannot be read, is as by
// default. Records are validated where they come in.
func SettingsOf(record *Resource) Settings {
	s := DefaultSettings()
	if record == nil {
		return s
	}
	number := func(name string, into *float64) {
		if f, err := strconv.ParseFloat(record.Settings[name], 64); err == nil {
			*into = f
		}
	}
	number(SettingRAMRatio, &s.Nodes.RAMRatio)
	number(SettingCPURatio, &s.Nodes.CPURatio)
	number(SettingInitialMSAV, &s.InitialMSAV)
	number(SettingFinalMSAV, &s.FinalMSAV)
	if size, err := units.ParseBytes(record.Settings[SettingOverhead]); err == nil {
		s.Nodes.Overhead = size
	}
	if steps, err := strconv.Atoi(record.Settings[SettingMSAVSteps]); err == nil {
		s.MSAVSteps = steps
	}
	if record.Settings[SettingStorage] == string(LocalStorage) {
		s.Storage = LocalStorage
	}
	if record.Settings[SettingKeyScope] == string(ScopeCluster) {
		s.KeyScope = ScopeCluster
	}
	if record.Settings[SettingPhysicalLedger] == string(Optimistic) {
		s.PhysicalLedger = Optimistic
	}
	s.readLoops(record)
	return s
}

func (s *Settings) readLoops(record *Resource) {
	mode := func(name string, into *Mode) {
		if m := Mode(record.Settings[name]); m == Off || m == Manual || m == Automatic {
			*into = m
		}
	}
	mode(SettingEnforcement, &s.Enforcement)
	mode(SettingBalancing, &s.Balancing)
	if window, err := ParseWindow(record.Settings[SettingBalanceWindow]); err == nil {
		s.BalanceWindow = window
	}
	if cooldown, err := time.ParseDuration(record.Settings[SettingCooldown]); err == nil {
		s.Cooldown = cooldown
	}
	if moves, err := strconv.Atoi(record.Settings[SettingParallelMoves]); err == nil {
		s.ParallelMoves = moves
	}
	if starts, err := strconv.Atoi(record.Settings[SettingParallelStarts]); err == nil {
		s.ParallelStarts = starts
	}
	if spare, err := strconv.Atoi(record.Settings[SettingSpareNodes]); err == nil {
		s.SpareNodes = spare
	}
	if after, err := time.ParseDuration(record.Settings[SettingFenceAfter]); err == nil {
		s.FenceAfter = after
	}
	if after, err := time.ParseDuration(record.Settings[SettingFenceSickAfter]); err == nil {
		s.FenceSickAfter = after
	}
	s.PromiseVCPUs, s.UpgradeMode = record.Settings[SettingPromiseVCPUs] == "true", record.Settings[SettingUpgradeMode] == "true"
	if restart := Restart(record.Settings[SettingRestart]); restart == RestartHA {
		s.Restart = restart
	}
}

// DefaultClusterRecord is the cluster that is there until it is declared: without any setting, and with the special keys
// that every cluster starts with. The design gives no default weights; with these an idle node scores 100, and a node with
// up to 20 % average contention still falls in the first band.
func DefaultClusterRecord() Resource {
	return Resource{Kind: KindCluster, ID: DefaultCluster, Name: DefaultCluster, Keys: SpecialKeyDefaults()}
}

// SpecialKeyDefaults are the special keys that a new cluster has: no contention and no load are the target.
func SpecialKeyDefaults() []Key {
	return []Key{
		{Class: SystemKey, Name: SpecialCPU, Weight: 30},
		{Class: SystemKey, Name: SpecialLoad, Weight: 30},
		{Class: SystemKey, Name: SpecialRAM, Weight: 40},
	}
}
