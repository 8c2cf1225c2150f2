"""The screens: the only floor that knows Textual."""
