"""Write files and directories atomically, and check documents before they are used."""
