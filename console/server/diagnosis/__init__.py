"""The parts of `console.server.diagnose`: the log as a story, and the rules that know its ends."""
