// Holds the precompiled header of the tests (isthmus_test.cmake).
