"""The cards, now: VRAM, PCIe, link, power, temperature, utilisation."""
