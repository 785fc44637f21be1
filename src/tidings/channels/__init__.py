"""Channels: how notifications reach people and other systems."""
