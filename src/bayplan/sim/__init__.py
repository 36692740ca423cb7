"""The simulator host: discrete events on a virtual clock."""
