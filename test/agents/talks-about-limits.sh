#!/bin/sh
# Its prose and the code it shows are full of limits; it has hit none (R9).
cat > /dev/null
echo 'Added handling of HTTP 429: "rate limit exceeded, overloaded, try again at 9:54 PM".'
echo 'API Error: 401 Invalid API key is now retried.' >&2
echo limits > done.txt
echo '<promise>COMPLETE</promise>'
