#!/bin/sh
# Leaves a mess and FAILED with a reason on the first attempt; works on the second.
cat > /dev/null
if [ "${RALPH_ATTEMPT:-1}" = 1 ]; then
  echo 'half done' > mess.txt
  printf '<promise>FAILED: the parser has no tests\nand the build is red</promise>\n'
  exit 0
fi
mkdir -p work
echo done > "work/story-${RALPH_STORY:-1}.txt"
echo '<promise>COMPLETE</promise>'
