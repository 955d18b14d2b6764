"""What turns the bytes of each kind of file into text. Each runs in a process of its own."""
