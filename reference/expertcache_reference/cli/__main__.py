"""`python -m expertcache_reference.cli`."""

from expertcache_reference.cli import main

if __name__ == "__main__":
    main()
