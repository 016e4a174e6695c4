#!/bin/sh
# Runs a launcher of MPI jobs with its arguments. After a job that failed, mpirun of Open MPI 4 now
# and then hangs in its own last steps (a mutex of PMIx): once all its processes have ended, the
# launcher has 20 seconds to follow.

has_processes() {  # PID
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    if grep -qs '^State:[[:space:]]*[A-WYa-z]' "/proc/$child/status"; then
      return 0
    fi
  done
  return 1
}

watch() {  # PID
  alone=0
  while [ $alone -lt 20 ]; do
    sleep 1
    alone=$((alone + 1))
    if has_processes "$1"; then
      alone=0
    fi
  done
  kill -KILL "$1"
}

"$@" &
launcher=$!
watch $launcher >/dev/null 2>&1 &
watcher=$!
wait $launcher
code=$?
kill $watcher 2>/dev/null || echo "$1 hung after its processes had ended, and was killed" >&2
exit $code
