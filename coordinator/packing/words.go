package packing

// words is the preset dictionary: what commands are likely to have in them, the likeliest at its end. It is
// fixed for ever once a release is out, because a log may hold what was packed with it: a change would read other commands out of
// it. Other words are another format, with a feature level of its own. A test keeps their sum.
const words = "" +
	`"zone","pod","billing_entity","customer","vdc","offer","image","nic","pool","group","disk","cluster""settings":{"ram_ratio":"1` +
	`.5","cpu_ratio":"4","overhead":"1G","scope":"shared","scope":"local","vms_rule":"positive","vms_rule":"negative","vms_enforcin` +
	`g":"true","nodes_rule":"disabled","nodes_enforcing":"false"},"links":{"cluster":"default","pod":"","zone":"","customer":"","bi` +
	`lling_entity":"","vdc":"","offer":"","image":"","policy":"built-in/affinity"},"members":{"vms":[""],"nodes":[""]},"lists":{"vm` +
	`_labels":[""]}"broken_since":"","trials":[{"holder":"","witness":"","verdict":"not shared","left":["",""],"looked":[{"boot":""` +
	`,"path":"/srv/","capacity":"volume":{"pool":"","nodes":[""],"name":"berth-","format":"qcow2","capacity":10737418240,"backing":` +
	`"","checksum":"","doomed":true},"copies":[{"identities":[{"id":"","kind":"operator","kind":"agent","kind":"coordinator","role"` +
	`:"operator","role":"viewer","role":"admin","keys":[{"hash":""valid_until":"","added_at":"","authority":"","revoked":{"at":"","` +
	`by":"operator/","reason":"","unconfirmed":""tokens":[{"hash":"","purpose":"agent","created_by":"operator/admin","expires_at":"` +
	`","used_by":"","used_at":"","uses":1,"used":[{"members":[{"id":"","name":"","raft_address":":7422","api_address":":7420","agen` +
	`t_address":":7421","joined_at":""meta":{"cluster_id":"","feature_level":"3","quarantine":"","identity_records_from":""plans":[` +
	`{"id":"","kind":"drain","kind":"balance","kind":"repair","state":"proposed","state":"running","state":"done","state":"failed",` +
	`"cluster":"default","node":"","node_name":"","group":"","policy":"affinity","caller":"operator/","request":"","reason":"","par` +
	`allel":2,"bandwidth":"moves":[{"vm":"","vm_name":"","source":"","source_name":"","target":"","target_name":"","memory":4294967` +
	`296,"result":"moved","attempts":1,"stays":true,"unit":"VMs","before":0,"predicted":0,"observed":0,"observed_at":"","message":"` +
	`","ended_at":""nodes":[{"id":"","name":"","cluster":"default","host_uuid":"","machine_id":"","enrolled_at":"","maintenance":tr` +
	`ue,"maintenance_reason":""labels":["rack-"],"management":true,"unbalanced":true,"fence":{"method":"command","program":"fence_i` +
	`pmilan","arguments":{"ip":"","also":[{"fencing":{"id":"","phase":"failed","method":"","boot":"","attempt":1,"struck":"","asked` +
	`_at":"","watchdog":60000000000,"peers":":16514,:22""hardware":"","hardware_source":"product","last_boot":"","twin":{"machine":` +
	`{"hardware":"","source":"","why":""snapshots":[{"name":"","tag":"","taken_at":"","taken_by":"operator/","consistency":"frozen"` +
	`,"disks":[{"target":"vda","source":{"path":""losses":[{"node":"","at":"","discards":[{"node":"","epoch":1}],"whereabouts":{"bo` +
	`ot":"","missing":"","drift":{"node":"","since":"","accepted":true,"edits":[{"kind":"disk","key":"vda","was":"","is":"","source` +
	`":{"path":"/var/lib/libvirt/images/","pool":"","volume":""},"media":true,"needs":""migration":{"elapsed":1000000000,"data_tota` +
	`l":0,"data_processed":0,"data_remaining":0,"memory_bps":0,"dirty_rate":0,"iteration":1,"downtime":<domain type='kvm'><name></n` +
	`ame><uuid></uuid><memory unit='KiB'></memory><currentMemory unit='KiB'></currentMemory><vcpu placement='static'></vcpu><os><ty` +
	`pe arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os><features><acpi/><apic/></features><cpu mode='host-model' check=` +
	`'partial'/><clock offset='utc'><timer name='rtc' tickpolicy='catchup'/></clock><on_poweroff>destroy</on_poweroff><on_reboot>re` +
	`start</on_reboot><on_crash>destroy</on_crash><devices><emulator>/usr/bin/qemu-system-x86_64</emulator><disk type='file' device` +
	`='disk'><driver name='qemu' type='qcow2' cache='none'/><source file='/var/lib/libvirt/images/'/><target dev='vda' bus='virtio'` +
	`/></disk><interface type='network'><mac address='52:54:00:'/><source network='default'/><model type='virtio'/></interface><con` +
	`sole type='pty'/><serial type='pty'><channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel><graph` +
	`ics type='vnc' port='-1' autoport='yes'/><memballoon model='virtio'/><rng model='virtio'><backend model='random'>/dev/urandom<` +
	`/backend></rng></devices></domain>#cloud-config\nhostname: \nusers:\n  - name: \n    ssh_authorized_keys:\n      - ssh-ed25519` +
	` AAAAC3NzaC1lZDI1NTE5AAAAI ssh-rsa AAAAB3NzaC1yc2E"key":{"groups":[{"group":"","name":"","placing":1,"vms":{"polarity":"negati` +
	`ve","enforcing":true},"nodes":{"polarity":"positive"},"priority":1,"on":[],"listed":"","shares":[""],"others":[{"node":0,"name` +
	`":"","count":1,"leaving":1,"fixed":1,"vms":[""]}]}],"uncovered":[{"nodes":[],"vms":[],"total":0,"memory":0}],"shares":[{"weigh` +
	`er":"vm-affinity","shares":[0,0,0,0]}],"met":[{"key":1,"value":0,"nodes":[0,1,2],"counts":[1,1,1]}]"tried":[{"cluster":"defaul` +
	`t","pod":"","used":0.25,"account_vms":0,"pod_vms":0,"total":0,"weight":0,"left_out":"","outcome":"refused","pod_used":0,"cpu":` +
	`0,"ram":0,"threshold":0.85,"special":1,"reason":"no node fits"}],"pools":[{"disk":"","pool":"","pool_name":"","image_pool":""a` +
	`cross":{"planner":"user-dispersing","level":"pod","weight":0.75,"capacity":"ram","bound":"","last":"","refused":"","owned":tru` +
	`e,"omitted":1}"changes":[{"kind":"size","text":"with VM moved","node":"","key":"","figure":0,"vm":"","to":""}],"failed_phase":` +
	`"constraint","failed_phase":"system""kind":"stop","kind":"migrate","kind":"reboot","kind":"delete","kind":"adopt","kind":"resi` +
	`ze","kind":"pause","kind":"snapshot","kind":"release","phase":"queued","phase":"copying","phase":"preparing","phase":"discardi` +
	`ng","result":"failed","result":"cancelled","result":"unknown","message":""source":"","source_name":"","source_epoch":1,"source` +
	`_boot":"","excluded":[""],"sticky":[{"class":"system","name":"","value":1,"weight":30}],"makes_home":true,"force":true,"grace"` +
	`:60000000000,"bandwidth":10485760,"deadline":3600000000000,"target_uri":"qemu+tls:///system","target_host":""pinned":"","cance` +
	`l":true,"leftover":"","revert":true,"plan":"","volumes":[{"disk":"","disk_name":"","pool":"","pool_name":"","volume":""replace` +
	`d":[{"disk":"","copy_storage":true,"given_up":"","when_back":true,"passed_cpu":"","cpu":"host-passthrough","cpu":"EPYC-Rome","` +
	`cpu":""start vm: step","stop vm: ended","stop vm","migrate vm: ended","migrate vm: step","migrate vm","delete vm","record deci` +
	`sion","cancel operation""vm.stopped","vm.deleted","vm.created","vm.placed","vm.migrate","vm.migrated","vm.released","node.enro` +
	`lled","node.unreachable","node.returned""condition":"","condition_kind":"","condition_about":"","desired":"stopped","vdc":"","` +
	`offer":"","image":"","disks":[""],"nics":[""],"keys":[{"class":"customer","name":"","value":1,"weight":-100}],"resident":[{"cl` +
	`ass":"customer","name":"","value":1}],"owner":{"customer":"","billing_entity":""},"home":"","labels":[""],"migration":"manual"` +
	`,"preferred":[""],"moved_at":"","within":"","ha":true,"restarts":1,"restarted_at":"","adopted":true,"persistent":true,"descrip` +
	`tion":"","restart":"always","restart_after":[""],"restart_priority":"high","kept":"","bound":"","needs":"","ran":[{"kind":"dis` +
	`k","key":"vda","source":{"path":"","pool":"","volume":"berth-"},{"kind":"nic","key":"52:54:00:","network":"default"}],"pending` +
	`":[{"field":"memory","was":"1 GiB","next":"2 GiB","by":"operator/","at":"","settled":1,"ballooned":true,"paused":{"by":"operat` +
	`or/","at":"","reverting":"","copies":{"spec":{"memory":4294967296,"vcpus":2,"kernel":"/boot/vmlinuz","initrd":"/boot/initrd","` +
	`cmdline":"console=ttyS0","disks":[{"path":"/var/lib/libvirt/images/","format":"qcow2","bus":"virtio","read_only":true,"format"` +
	`:"qcow2","bus":"virtio","pool":"","volume":"berth-.qcow2"}],"networks":["default","bridge:br0"],"xml":"","machine":"q35","firm` +
	`ware":"efi","user_data":"","max_memory":8589934592,"max_vcpus":4}"pinned":"","excluded":[""],"current":"","customer_keys":[{"n` +
	`ame":"","value":0,"weight":100,"class":"customer","level":"vm"}],"owner":{"customer":"","billing_entity":""},"home":"","if_bet` +
	`ter":0,"labels":[""],"leave":true,"among":[""],"preferred":[""],"unit":{"vms":[""],"memory":0,"vcpus":1,"names":[""]},"planner` +
	`":"","disks":[{"id":"","name":"","size":10737418240,"wanted":"","pool":"","node":"","image_pool":"","image_nodes":[""],"image"` +
	`:"""networks":["default"],"copy_storage":true,"cpu":"","passed_cpu":"","ha":true,"restart":true,"bindings":[""],"last":"","apa` +
	`rt":[{"node":"","why":""purpose":"migrate","purpose":"create","purpose":"drain","purpose":"balance","purpose":"repair","purpos` +
	`e":"return","policy":"fco","policy":"memory""reasons":["","",""],"node_keys":[{"name":"","values":[0,0,0,0,0,0,0],"sticky":tru` +
	`e,"weight":30}],"account_vms":[0,0,0,0,0,0],"pools":[{"id":"","name":"","shared":true,"has":"AQEBAQEB","shares":[{"capacity":1` +
	`099511627776,"available":1099511627776,"promised":0,"limit":2199023255552,"volumes":0},{"capacity":1099511627776,"available":1` +
	`099511627776,"promised":0,"limit":2199023255552,"volumes":0}]}],"networks":[{"name":"bridge:br0","has":"AQEBAQEBAQEBAQEBAQEB"}` +
	`],"models":{"model":"EPYC-Rome","has":"AQEBAQEB","hosts":["",""]},"oldest":30000000000"at":"2026-11-01T00:00:00.000000000Z","o` +
	`utcome":"stay","outcome":"refused","margin":0.5,"dry_run":true,"winner":""reason":" wins by 0. over , of 1 nodes in round 1","` +
	` is the only node"," fits best, "," is as good as 9 other nodes, of 10 nodes above 80 in round 1, and won the draw","omitted":` +
	`872,"round":1,"4294967296,4294967296,8589934592,17179869184,34359738368,68719476736,137438953472,274877906944,549755813888,109` +
	`9511627776,1073741824,""inputs":{"cluster":"default","ids":["2n8txpwv81dmr","2n8txpwv81dmr"],"names":["node-","node-"],"standi` +
	`ng":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","known":"Hx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8f","inventory_at":[` +
	`1795600000000000000,1795600000000000000],"telemetry_at":[1795600000000000000,1795600000000000000],"memory":[274877906944,27487` +
	`7906944,274877906944,274877906944],"ram_ratio":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"overhead":[1073741824,1073741824,1073741824,` +
	`1073741824,1073741824],"promised":[274877906944,274877906944,274877906944],"used":[10737418240,10737418240],"free":[2211908157` +
	`44,221190815744],"vcpu_limit":[512,512,512,512,512,512,512,512,512,512,512,512],"vcpus":[10,10,10,10,10,10,10,10],"load":[0.04` +
	`6875,0.1875,0.125,0.0625,0.03125],"count":[10,10,10,10,10,10,10,10,10,10,10,10],"management":[false,false,false,false,false,fa` +
	`lse],"cpus":[64,64,64,64,64,64,64,64,64,64,64,64],"coming":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"cpu_pressure` +
	`":[4.4942328371557893e+307,4.4942328371557893e+307,4.4942328371557893e+307],"memory_pressure":[4.4942328371557893e+307,4.49423` +
	`28371557893e+307,4.4942328371557893e+307],"vcpu_delay":[4.4942328371557893e+307,4.4942328371557893e+307,4.4942328371557893e+30` +
	`7]}}],"partial":[{"table":"node","id":"","fields":["maintenance","maintenance_reason","fencing","last_boot"]},{"table":"resour` +
	`ce","id":"","fields":["volume","links","settings","members"]},{"table":"vm","id":"","fields":["condition","condition_kind","co` +
	`ndition_about","desired","holder","epoch","last_epoch","operation","last_node","last_decision","moved_at","whereabouts","drift` +
	`","ran","pending","paused"]},{"table":"operation","id":"","fields":["step","attempt","epoch","decision","target","target_name"` +
	`,"message","migration","spec","volumes"{"key":"2n8txpwywjw9p","kind":"start vm: ended","caller":"operator/","at":"2026-11-T12:` +
	`00:00Z","expect":[{"table":"operation","id":"2n8txpwv81dmr","revision":1},{"table":"vm","id":"-4-8-","revision":1}],"vms":[{"i` +
	`d":"","name":"","spec":{"memory":0,"vcpus":0},"desired":"","holder":"","epoch":1,"last_epoch":0,"last_node":"","created_at":"0` +
	`001-01-01T00:00:00Z","started_at":"","revision":0,"ran_size":{"memory":4294967296,"vcpus":2}}],"operations":[{"id":"","kind":"` +
	`","caller":"","vm":"","vm_name":"","epoch":0,"phase":"ended","step":0,"attempt":0,"result":"done","evidence":["step 1:  answer` +
	`ed done, domain running"],"created_at":"0001-01-01T00:00:00Z","updated_at":"","ended_at":"","revision":0}],"events":[{"at":"",` +
	`"kind":"vm.started","subject":"vm/","message":"runs on ","caller":"operator/","operation":"","decision":""}],"level":3,"releas` +
	`e":"0.7","partial":[{"table":"vm","id":"","fields":["holder","epoch","operation","last_node","started_at","ran_size"]},{"table` +
	`":"operation","id":"","fields":["phase","result","evidence","updated_at","ended_at"]}]}{"key":"","kind":"start vm","caller":"o` +
	`perator/","at":"2026-","expect":[{"table":"vm","id":"-4-8-","revision":0},{"table":"operation","id":"","revision":0},{"table":` +
	`"resource","id":"default","revision":0},{"table":"node","id":"","revision":1}],"vms":[{"id":"","name":"","spec":{"memory":1073` +
	`741824,"vcpus":1,"kernel":"/boot/vmlinuz"},"desired":"running","epoch":0,"last_epoch":1,"operation":"","last_decision":"","cre` +
	`ated_at":"2026-","revision":0}],"operations":[{"id":"","kind":"start","caller":"operator/","request":"","vm":"","vm_name":"","` +
	`target":"","target_name":"","epoch":1,"phase":"dispatched","step":1,"attempt":1,"decision":"","created":true,"memory":10737418` +
	`24,"vcpus":1,"created_at":"2026-","updated_at":"2026-","revision":0,"target_boot":""}],"decisions":[{"id":"","at":"2026-","cal` +
	`ler":"operator/","operation":"","policy":"affinity","seed":1,"request":{"purpose":"start","vm":"","vm_name":"","memory":107374` +
	`1824,"vcpus":1,"cluster":"default","system_keys":[{"name":"#CPU","value":0,"weight":30,"class":"system","level":"cluster"},{"n` +
	`ame":"#LOAD","value":0,"weight":30,"class":"system","level":"cluster"},{"name":"#RAM","value":0,"weight":40,"class":"system","` +
	`level":"cluster"}]},"outcome":"placed","winner":"","winner_name":"","reason":"","omitted":872,"round":1,"rules":{"name":"affin` +
	`ity","constraints":["running","fresh","memory-promised","memory-physical","pin","excluded","local-storage","movable","among","` +
	`leave","node-affinity","vm-affinity","storage","same-pool","network","cpu-model","headroom"],"planner":"first-fit","gate":{"ki` +
	`nd":"bands","initial":80,"final":-10,"steps":10},"weighers":[{"weigher":"customer-keys","factor":1},{"weigher":"node-affinity"` +
	`,"factor":20},{"weigher":"vm-affinity","factor":1},{"weigher":"preferred-nodes","factor":99}],"selector":"rank","customer_key_` +
	`scope":"customer","soft_rules":"before-bands","contended_above":60},"inputs":{"cluster":"default","ids":[""events":[{"at":"202` +
	`6-","kind":"vm.start","subject":"vm/","message":"starts on ","caller":"operator/","operation":"","decision":""}],"level":3,"re` +
	`lease":"`
