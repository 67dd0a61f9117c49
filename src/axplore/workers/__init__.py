"""Work done side by side: engines that run workers, and a world whose orders they carry out."""
