"""The one seam to the machine. Read `seam`: what is asked of it."""
