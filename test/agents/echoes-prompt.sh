#!/bin/sh
# Repeats its orders word for word and does nothing (P2).
cat
