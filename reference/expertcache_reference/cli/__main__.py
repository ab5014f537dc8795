"""`python -m expertcache_reference.cli`."""

from expertcache_reference.cli import main

main()
