#!/bin/sh
# Commits its half-done work and FAILED (G2).
cat > /dev/null
echo half > half.txt
git add -A && git -c user.name=agent -c user.email=agent@example.com commit -qm 'half done' >&2
echo '<promise>FAILED: committed too early</promise>'
