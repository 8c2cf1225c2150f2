"""A/B runs: plan, order, measure, compare, report. Lives in a process of its own."""
