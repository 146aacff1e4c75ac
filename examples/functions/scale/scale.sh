#!/bin/sh
# A function in shell: everything has three replicas.
exec sed 's/^\( *replicas:\) .*/\1 3/'
