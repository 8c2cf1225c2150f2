"""What fills the terminal: compose and handlers, no domain logic."""
