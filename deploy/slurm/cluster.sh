#!/usr/bin/env bash
# A Slurm cluster on this machine, to try `--runner=slurm` and to test it: a controller and NODES nodes (3).
#
#   cluster.sh up              start it; exit code 77 and the reason where that can't be done
#   cluster.sh hosts           start the machines alone, without Slurm, for other engines
#   cluster.sh head COMMAND    run a command on the login node, such as sbatch or `curate run ...`
#   cluster.sh on n2 COMMAND   run a command on a node, or on `store`, one more machine for an object store
#   cluster.sh kill n2         power off a node: all its processes end at once; `start n2` is the opposite
#   cluster.sh cut n2          pull out its network cable; `heal n2` is the opposite
#   cluster.sh down            end everything
#
# Needs root, util-linux and (Debian) apt-get install --no-install-recommends slurmctld slurmd slurm-client munge iproute2.
# (`hosts` needs iproute2 alone). State and logs lie in PLACE (.slurm-cluster). The login node is 10.79.0.1, the store
# 10.79.0.2, n1 10.79.0.11; nothing else can be reached. CPUS and MEMORY (MB) are what Slurm believes a node has; MORE
# adds lines to slurm.conf. A node is a set of Linux namespaces with a host name, an address, processes and mounts of its own; the
# bridge lies in the namespace of the login node, so that this machine's network stays as it is.
set -eEuo pipefail
PLACE=$(realpath -m "${PLACE:-.slurm-cluster}")
NODES=${NODES:-3} CPUS=${CPUS:-2} MEMORY=${MEMORY:-4000} NET=10.79.0
export SLURM_CONF=$PLACE/slurm.conf
space() { echo "curate-slurm-$1"; }
nodes() { seq -f 'n%g' "$NODES"; }

config() {
  cat <<END
ClusterName=here
SlurmctldHost=head($NET.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$PLACE/munge/socket,cred_expire=5
StateSaveLocation=$PLACE/state
SlurmdSpoolDir=$PLACE/spool/%n
SlurmctldPidFile=$PLACE/slurmctld.pid
SlurmdPidFile=$PLACE/spool/%n.pid
SlurmctldLogFile=$PLACE/slurmctld.log
SlurmdLogFile=$PLACE/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,batch_sched_delay=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=5
ReturnToService=2
DebugFlags=NO_CONF_HASH
${MORE:-}
END
  for node in $(nodes); do
    echo "NodeName=$node NodeAddr=$NET.$((10 + ${node#n})) CPUs=$CPUS RealMemory=$MEMORY"
  done
  echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefMemPerCPU=$((MEMORY / CPUS)) State=UP"
}

# Runs a program in the namespaces of a machine and notes its process. What it starts ends with it.
machine() {
  local name=$1 note=$2
  shift 2
  # Not `ip netns exec`, under which slurmd sees no control groups.
  nsenter --net="/run/netns/$(space "$name")" unshare --uts --mount --pid --fork --kill-child --mount-proc \
    bash -c "hostname $name; mount --bind '$PLACE/hosts' /etc/hosts; exec \"\$@\"" - "$@" >"$PLACE/$note.out" 2>&1 </dev/null &
  echo $! >"$PLACE/$note.process"
  disown
}

start() {
  local services=
  [ ! -e "$SLURM_CONF" ] || [ "$1" = store ] || services="slurmd -D &"
  machine "$1" "$1" bash -c "$services while :; do sleep 1; done"
  until first "$1" >/dev/null; do sleep .05; done
}

first() { pgrep -P "$(cat "$PLACE/$1.process")"; } # the first process inside: all others end with it

stop() {
  local process
  process=$(first "$1") && kill -9 "$process"
  rm "$PLACE/$1.process"
}

needed() {
  [ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
  for tool in ip nsenter unshare pgrep "$@"; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed"; exit 77; }
  done
}

join() { # a machine to the bridge
  ip netns add "$(space "$1")"
  ip -n "$(space head)" link add "to-$1" type veth peer name eth0 netns "$(space "$1")"
  ip -n "$(space head)" link set "to-$1" master bridge up
  ip -n "$(space "$1")" link set lo up
  ip -n "$(space "$1")" addr add "$2/24" dev eth0
  ip -n "$(space "$1")" link set eth0 up
  echo "$2 $1" >>"$PLACE/hosts"
}

network() {
  needed "$@"
  trap 'echo "this machine cannot do: $BASH_COMMAND"; exit 77' ERR # no namespaces, bridges or devices, for example
  ip netns add "$(space head)"
  mkdir -p "$PLACE"
  printf '%s\n' '127.0.0.1 localhost' "$NET.1 head" >"$PLACE/hosts"
  ip -n "$(space head)" link set lo up
  ip -n "$(space head)" link add bridge type bridge
  ip -n "$(space head)" addr add "$NET.1/24" dev bridge
  ip -n "$(space head)" link set bridge up
  join store "$NET.2"
  for node in $(nodes); do join "$node" "$NET.$((10 + ${node#n}))"; done
}

hosts() {
  network
  for node in store $(nodes); do start "$node"; done
}

up() {
  network slurmctld slurmd sbatch munged
  mkdir -p "$PLACE"/{munge,state,spool}
  chmod 711 "$PLACE" "$PLACE/munge"
  config >"$SLURM_CONF"
  echo CgroupPlugin=cgroup/v1 >"$PLACE/cgroup.conf"
  (umask 077 && head -c 128 /dev/urandom >"$PLACE/munge/key")
  machine head munged munged --foreground --force --key-file="$PLACE/munge/key" --socket="$PLACE/munge/socket" \
    --pid-file="$PLACE/munge/pid" --seed-file="$PLACE/munge/seed" --log-file="$PLACE/munged.log"
  machine head slurmctld bash -c "until [ -S '$PLACE/munge/socket' ]; do sleep .1; done; exec slurmctld -D"
  for node in store $(nodes); do start "$node"; done
  for _ in $(seq 60); do
    idle=$("$0" head sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l) || idle=0
    [ "$idle" -lt "$NODES" ] || { echo "$idle nodes are up"; return; }
    sleep .5
  done
  echo "only $idle of $NODES nodes came up; see the logs in $PLACE"
  exit 77
}

down() {
  for note in "$PLACE"/*.process; do
    [ ! -e "$note" ] || stop "$(basename "$note" .process)" || true
  done
  for node in store $(nodes) head; do ip netns del "$(space "$node")" 2>/dev/null || true; done
  rm -rf "$PLACE"
}

case ${1:-} in
  up | hosts | down) "$1" ;;
  start) start "$2" ;;
  kill) stop "$2" ;;
  cut) ip -n "$(space head)" link set "to-$2" down ;;
  heal) ip -n "$(space head)" link set "to-$2" up ;;
  on) process=$(first "$2") && shift 2 && exec nsenter -t "$process" --net --uts --mount --pid "$@" ;;
  head) shift && exec nsenter --net="/run/netns/$(space head)" "$@" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
