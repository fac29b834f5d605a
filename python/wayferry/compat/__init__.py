"""Layers that let programs written for another library run on Wayferry."""
