// Package cpumodel knows which CPU models are newer than others. It is pure.
package cpumodel

import (
	"strconv"
	"strings"
)

// rankedModels are the CPU models that a baseline may be, from what the fewest hosts lack to what the most do: those of
// libvirt's CPU map by generation (libvirt: src/cpu_map/index.xml; QEMU: "CPU model configuration", Preferred CPU models),
// Intel's and AMD's of about the same age side by side. Of one generation the models without TSX, which is switched off by
// firmware of today, come after those with it, and those with the microcode mitigations (IBRS, IBPB) last.
// Models that are not listed, as those of emulators (max, host) and what this release does not know yet, are no baseline
// unless a cluster names them.
var rankedModels = rank(
	"qemu32 kvm32 486 pentium pentium2 pentium3 pentiumpro coreduo n270 athlon",
	"qemu64 kvm64 core2duo Opteron_G1 Conroe phenom Opteron_G2 Penryn Opteron_G3",
	"Nehalem Nehalem-IBRS Westmere Westmere-IBRS SandyBridge SandyBridge-IBRS Opteron_G4 Opteron_G5 IvyBridge IvyBridge-IBRS",
	"Haswell Haswell-noTSX Haswell-IBRS Haswell-noTSX-IBRS Broadwell Broadwell-noTSX Broadwell-IBRS Broadwell-noTSX-IBRS",
	"EPYC EPYC-IBPB Dhyana",
	"Skylake-Client Skylake-Client-IBRS Skylake-Client-noTSX-IBRS Skylake-Server Skylake-Server-IBRS Skylake-Server-noTSX-IBRS",
	"EPYC-Rome Cascadelake-Server Cascadelake-Server-noTSX Cooperlake Icelake-Client Icelake-Client-noTSX",
	"EPYC-Milan Icelake-Server Icelake-Server-noTSX EPYC-Genoa SapphireRapids EPYC-Turin GraniteRapids SierraForest ClearwaterForest",
	"POWER6 POWER7 POWER8 POWER9 POWER10 POWER11",
)

func rank(generations ...string) map[string]int {
	ranks := make(map[string]int)
	for _, models := range generations {
		for _, model := range strings.Fields(models) {
			ranks[model] = len(ranks) + 1
		}
	}
	return ranks
}

// rankOf is where a model stands, and which version of it; 0: it is not listed. NAME-vN is version N of NAME.
func rankOf(model string) (rank, version int) {
	if rank = rankedModels[model]; rank > 0 {
		return rank, 0
	}
	at := strings.LastIndex(model, "-v")
	if at < 0 {
		return 0, 0
	}
	version, err := strconv.Atoi(model[at+2:])
	if err != nil || version < 1 {
		return 0, 0
	}
	return rankedModels[model[:at]], version
}

// Best is the model that the fewest hosts can run, and of it the highest version; empty: none is listed.
func Best(models []string) string {
	best, bestRank, bestVersion := "", 0, 0
	for _, model := range models {
		if rank, version := rankOf(model); rank > bestRank || rank == bestRank && rank > 0 && version > bestVersion {
			best, bestRank, bestVersion = model, rank, version
		}
	}
	return best
}
