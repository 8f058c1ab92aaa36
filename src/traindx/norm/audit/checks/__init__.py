"""The checks, a file each: `traindx.norm.audit.check` finds them."""
