// Holds the precompiled header of all sources that include torch (isthmus_torch.cmake).
